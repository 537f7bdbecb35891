import type { ReactNode } from "react";
import { Link, useSearchParams } from "react-router";

import type { Page, Subject } from "../api/client";
import { ago, count } from "../format";
import { isNarrowed } from "./address";
import { AddressSelect, AddressText } from "./AddressFilters";
import { Answer } from "./Answer";
import { CardRow, CardTable, Cell, type Column } from "./CardTable";
import { Empty } from "./Empty";
import { Meter } from "./Figures";
import { State } from "./State";
import { useTitle } from "./useTitle";

/** The parameters of the address that narrow such a list. */
export const NAMES = ["text", "target", "sort"] as const;
const SORTS = [
  ["", "Newest first"],
  ["created_at", "Oldest first"],
  ["name", "By name"],
] as const;

interface Words {
  title: string;
  /** What the page is called in the tab and in its address. */
  label: string;
  path: string;
  /** The column of names. */
  one: string;
  many: string;
  example: string;
}

interface Props<Item> {
  words: Words;
  query: {
    data: { pages: Page<Item>[] } | undefined;
    error: Error | null;
    isSuccess: boolean;
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    fetchNextPage: () => unknown;
  };
  /** The columns between the state and the trials, and their cells. */
  columns: readonly Column[];
  cells: (item: Item) => ReactNode;
  /** How to make the first one. */
  hint: ReactNode;
}

/** The list of what is tuned as the jobs of a group: models, searches over ranges. */
export function SubjectList<Item extends Subject>(props: Props<Item>) {
  const { words, query, columns, cells, hint } = props;
  const [params] = useSearchParams();
  useTitle(words.label);
  return (
    <>
      <div className="page-head">
        <h1>{words.title}</h1>
      </div>
      <search className="card filters">
        <AddressText name="text" label="Text" placeholder={words.example} />
        <AddressText name="target" label="Target" />
        <AddressSelect name="sort" label="Sort" options={SORTS} />
      </search>
      <Answer query={query}>
        {({ pages }) => {
          const found = pages.flatMap((page) => page.items);
          if (!found.length && isNarrowed(params)) return <NoMatch words={words} />;
          if (!found.length)
            return <Empty title={`No ${words.title.toLowerCase()} yet`}>{hint}</Empty>;
          return (
            <CardTable
              label={words.label}
              columns={[[words.one], ["State"], ...columns, ["Trials", "number"], ["Submitted"]]}
            >
              {found.map((item) => (
                <Row key={item.id} item={item} path={words.path}>
                  {cells(item)}
                </Row>
              ))}
            </CardTable>
          );
        }}
      </Answer>
      {query.hasNextPage && (
        <button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More {words.many}
        </button>
      )}
    </>
  );
}

function Row({ item, path, children }: { item: Subject; path: string; children: ReactNode }) {
  return (
    <CardRow>
      <Cell className="whole">
        <span className="task">
          <Link to={`${path}/${item.id}`}>{item.name}</Link>
          <span className="under mono">{item.target}</span>
        </span>
      </Cell>
      <Cell of="State">
        <State of={item.state} />
      </Cell>
      {children}
      <Cell of="Trials" className="number">
        {count(item.num_measured)} / {count(item.max_trials)}
        <span className="under">
          <Meter share={item.num_measured / item.max_trials} />
        </span>
      </Cell>
      <Cell of="Submitted">
        {ago(item.created_at)}
        <span className="under">{item.owner && `by ${item.owner}`}</span>
      </Cell>
    </CardRow>
  );
}

function NoMatch({ words }: { words: Words }) {
  return (
    <Empty title={`No matching ${words.many}`}>
      <p>Remove a filter, or show all {words.many}.</p>
      <Link className="button" to={words.path}>
        All {words.many}
      </Link>
    </Empty>
  );
}
