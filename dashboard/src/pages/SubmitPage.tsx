import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { post, type Job } from "../api/client";
import type { Group } from "../api/lists";
import { useCaller } from "../api/queries";
import { Trouble } from "../components/Answer";
import { NotAllowed } from "../components/NotAllowed";
import { useTitle } from "../components/useTitle";
import {
  fieldsOf,
  newTask,
  NO_OPTIONS,
  workloadOf,
  type Options,
  type TaskDraft,
} from "./submit/draft";
import { OptionFields } from "./submit/OptionFields";
import { TaskEditor } from "./submit/TaskEditor";
import { obstacleOf, useTaskChecks } from "./submit/useTaskChecks";

/** Start a job, or several that share a budget. */
export function SubmitPage() {
  const [tasks, setTasks] = useState<TaskDraft[]>([newTask(0)]);
  const [options, setOptions] = useState(NO_OPTIONS);
  const nextId = useRef(1);
  const submission = useSubmission();
  const { maySubmit } = useCaller();
  const checks = useTaskChecks(tasks, options.target);
  const form = useRef<HTMLFormElement>(null);
  const [hasValidFields, setValidFields] = useState(true);
  // The fields say themselves what they take: the browser holds them to it.
  useEffect(() => {
    setValidFields(form.current?.checkValidity() ?? true);
  }, [tasks, options]);
  const obstacle = obstacleOf(checks, hasValidFields);
  useTitle("New job");
  function change(changed: TaskDraft) {
    setTasks(tasks.map((task) => (task.id === changed.id ? changed : task)));
  }
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        submission.mutate({ tasks, options });
      }}
    >
      <div className="page-head">
        <h1>New job</h1>
      </div>
      {tasks.map((task, place) => (
        <TaskEditor
          key={task.id}
          task={task}
          check={checks[place] ?? { state: "reading" }}
          place={tasks.length > 1 ? place + 1 : null}
          onChange={change}
          onRemove={tasks.length > 1 ? () => setTasks(tasks.filter((t) => t !== task)) : null}
        />
      ))}
      <p className="row">
        <button type="button" onClick={() => setTasks([...tasks, newTask(nextId.current++)])}>
          Add a task
        </button>
        <span className="quiet small">
          All tasks share the trials: each round goes to the task with the largest expected gain.
        </span>
      </p>
      <OptionFields options={options} onChange={setOptions} />
      {submission.error && <Trouble error={submission.error} />}
      <NotAllowed id="not-allowed" to="start jobs" />
      <p className="row">
        <button
          className="main"
          disabled={submission.isPending || !maySubmit || obstacle !== null}
          aria-describedby={maySubmit ? "obstacle" : "not-allowed"}
        >
          {tasks.length > 1 ? `Start ${tasks.length} jobs` : "Start tuning"}
        </button>
        <span id="obstacle" className="quiet small">
          {maySubmit && obstacle}
        </span>
      </p>
    </form>
  );
}

interface Draft {
  tasks: TaskDraft[];
  options: Options;
}

function useSubmission() {
  const navigate = useNavigate();
  // A request that is sent again, since its answer was lost, makes no second job.
  const key = useRef(crypto.randomUUID());
  return useMutation({
    mutationFn: (draft: Draft) => submit(draft, key.current),
    onSuccess: (address) => navigate(address),
    onError: () => {
      key.current = crypto.randomUUID();
    },
  });
}

/** Queue what was written; returns where it can be watched. */
async function submit({ tasks, options }: Draft, key: string): Promise<string> {
  const more = { "Idempotency-Key": key };
  const fields = fieldsOf(options);
  const [first] = tasks;
  if (first && tasks.length === 1) {
    const job = await post<Job>("/jobs", { workload: workloadOf(first), ...fields }, more);
    return `/jobs/${job.id}`;
  }
  const weighted = tasks.map((task) => ({ workload: workloadOf(task), weight: task.weight }));
  const group = await post<Group>("/groups", { tasks: weighted, ...fields }, more);
  return `/?group=${group.id}`;
}
