import { ApiError, type TrialCode } from "../../api/client";
import { useTrialCode } from "../../api/queries";
import { Answer } from "../../components/Answer";
import { CopyButton } from "../../components/CopyButton";
import { SideBySide } from "../../components/SideBySide";
import { Tabs } from "../../components/Tabs";
import { plural } from "../../format";

const REFUSED = 422;

interface Props {
  id: string;
  number: string;
}

/** The code of a trial on a card of its own. */
export function CodeCard({ id, number }: Props) {
  return (
    <section className="card">
      <h2>Code</h2>
      <TrialCodeView id={id} number={number} />
    </section>
  );
}

/** The program before and after its schedule, the trace, and the compiled code. */
export function TrialCodeView({ id, number }: Props) {
  const query = useTrialCode(id, number);
  const { error } = query;
  if (error instanceof ApiError && error.problem.status === REFUSED) {
    return (
      <>
        <p>The compiler rejected this schedule, so it has no code. Its message:</p>
        <pre className="code" tabIndex={0} role="region" aria-label="Message of the compiler">
          {error.problem.detail}
        </pre>
      </>
    );
  }
  return <Answer query={query}>{(code) => <Code code={code} />}</Answer>;
}

function Code({ code }: { code: TrialCode }) {
  const source = code.source_language;
  const assembly = code.assembly_language;
  return (
    <Tabs
      label="Code"
      tabs={[
        ["Program", <SideBySide key="program" before={code.before} after={code.after} />],
        ["Trace", <Text key="trace" name="Trace" text={code.trace} />],
        [source, <Text key="source" name={source} text={code.source} />],
        [assembly, <Text key="assembly" name={assembly} text={code.assembly} />],
      ]}
    />
  );
}

function Text({ name, text }: { name: string; text: string }) {
  return (
    <>
      <p className="row">
        <span className="quiet small push">{plural(text.split("\n").length, "line")}</span>
        <CopyButton label="Copy" text={() => text} />
      </p>
      <pre className="code" tabIndex={0} role="region" aria-label={name}>
        {text || "# no changes"}
      </pre>
    </>
  );
}
