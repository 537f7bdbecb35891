import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { get, send, type Best } from "../../api/client";
import type { BestSummary, WorkloadText } from "../../api/lists";
import { Answer, Trouble } from "../../components/Answer";
import { howItRan } from "../../components/Against";
import { CopyButton } from "../../components/CopyButton";
import { download } from "../../components/download";
import { snippet } from "../../components/snippet";
import { secs } from "../../format";
import { TrialCodeView } from "../trial/CodeCard";

interface Found {
  best: Best;
  workload: WorkloadText;
}

/** The code and the provenance of a best schedule, and its downloads. */
export function BestDetails({ best }: { best: BestSummary }) {
  const { workload_key, target } = best;
  const query = useQuery({
    queryKey: ["best", workload_key, target, best.job_id, best.trial_number],
    queryFn: async ({ signal }): Promise<Found> => ({
      best: await get<Best>("/schedules/best", { workload_key, target }, signal),
      workload: await get<WorkloadText>(`/workloads/${workload_key}`, {}, signal),
    }),
  });
  return (
    <Answer query={query}>
      {(found) => (
        <div className="stack details">
          <Actions summary={best} found={found} />
          <div style={{ minWidth: 0 }}>
            <h2>The scheduled program</h2>
            <TrialCodeView id={best.job_id} number={String(best.trial_number)} />
          </div>
          <div style={{ minWidth: 0 }}>
            <h2>Measured with</h2>
            <Facts facts={{ ...found.best.provenance, ...besides(found.best.baseline) }} />
          </div>
        </div>
      )}
    </Answer>
  );
}

function Actions({ summary, found }: { summary: BestSummary; found: Found }) {
  const { target, workload_name, workload_key } = summary;
  const name = `${workload_name}-${workload_key.slice(0, 12)}`;
  const script = found.workload.script;
  const kernel = useMutation({
    mutationFn: async () => {
      const response = await send("/artifacts", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ workload: { script }, target }),
      });
      download(`${name}.kernel`, await response.blob());
    },
  });
  return (
    <>
      <span className="row">
        <Link className="button" to={`/jobs/${summary.job_id}/trials/${summary.trial_number}`}>
          Open trial {summary.trial_number}
        </Link>
        <button
          onClick={() => {
            const trace = JSON.stringify(found.best.trace, null, 2);
            download(`${name}.trace.json`, new Blob([trace], { type: "application/json" }));
          }}
        >
          Download trace
        </button>
        <button
          disabled={kernel.isPending}
          onClick={() => {
            kernel.mutate();
          }}
        >
          {kernel.isPending ? "Building…" : "Download kernel"}
        </button>
        <CopyButton
          label="Copy client snippet"
          text={() => snippet(location.origin, script, target)}
        />
      </span>
      {kernel.error && <Trouble error={kernel.error} />}
    </>
  );
}

function besides(baseline: Best["baseline"]): Record<string, string> {
  if (!baseline) return {};
  const { version, run_secs, kernel_secs, tried } = baseline;
  const library = `${version}: ${secs(run_secs)}, the kernel ${secs(kernel_secs)}`;
  const how = howItRan(baseline);
  const settings = (tried ?? []).map((one) => `${one.name}: ${secs(one.secs)} (${one.kernel_set})`);
  return {
    library,
    ...(how && { "library code": how }),
    ...(settings.length > 0 && { "settings tried": settings.join("; ") }),
  };
}

function Facts({ facts }: { facts: Record<string, unknown> }) {
  return (
    <table className="small">
      <tbody>
        {Object.entries(facts).map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name.replaceAll("_", " ")}</th>
            <td className="mono long">
              {typeof value === "string" ? value : JSON.stringify(value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
