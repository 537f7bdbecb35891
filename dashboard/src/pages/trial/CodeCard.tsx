import { ApiError, type TrialCode } from "../../api/client";
import { useTrialCode } from "../../api/queries";
import { Answer } from "../../components/Answer";
import { CopyButton } from "../../components/CopyButton";
import { SideBySide } from "../../components/SideBySide";
import { Tabs } from "../../components/Tabs";

const REFUSED = 422;

/** The program before and after, and what it was compiled to. */
export function CodeCard({ id, number }: { id: string; number: string }) {
  const query = useTrialCode(id, number);
  const { error } = query;
  const isRefused = error instanceof ApiError && error.problem.status === REFUSED;
  return (
    <section className="card">
      <h2>Code</h2>
      {isRefused ? (
        <>
          <p>The compiler refuses this schedule, so there is no code of it. It says:</p>
          <pre className="code">{error.problem.detail}</pre>
        </>
      ) : (
        <Answer query={query}>{(code) => <Code code={code} />}</Answer>
      )}
    </section>
  );
}

function Code({ code }: { code: TrialCode }) {
  return (
    <Tabs
      label="Code"
      tabs={[
        ["Program", <SideBySide key="program" before={code.before} after={code.after} />],
        ["Trace", <Text key="trace" name="Trace" text={code.trace} />],
        ["LLVM IR", <Text key="llvm" name="LLVM IR" text={code.llvm} />],
        ["Assembly", <Text key="assembly" name="Assembly" text={code.assembly} />],
      ]}
    />
  );
}

function Text({ name, text }: { name: string; text: string }) {
  return (
    <>
      <p className="row">
        <span className="quiet small push">{text.split("\n").length} lines</span>
        <CopyButton label="Copy" text={() => text} />
      </p>
      <pre className="code" tabIndex={0} role="region" aria-label={name}>
        {text || "# nothing was changed"}
      </pre>
    </>
  );
}
