/** Calls of the REST API. An answer that is not 2xx becomes an `ApiError` with its problem document. */

import { noteConnection } from "./connection";
import type { components } from "./schema";
import { refused, session, signedIn } from "./session";

export type Job = components["schemas"]["JobRead"];
export type Trial = components["schemas"]["TrialRead"];
export type TrialCode = components["schemas"]["TrialCode"];
export type Worker = components["schemas"]["WorkerRead"];
export type CostModel = components["schemas"]["CostModelRead"];
export type Model = components["schemas"]["ModelRead"];
/** What is tuned as the jobs of a group: what models and searches over ranges have in common. */
export type Subject = Pick<
  ModelSummary & ShapesSummary,
  | "id"
  | "name"
  | "target"
  | "owner"
  | "created_at"
  | "group_id"
  | "state"
  | "max_trials"
  | "num_measured"
>;
export type ModelSummary = components["schemas"]["ModelSummary"];
export type Shapes = components["schemas"]["ShapesRead"];
export type ShapesSummary = components["schemas"]["ShapesSummary"];
export type Problem = components["schemas"]["Problem"];
export type Best = components["schemas"]["BestRead"];
export type JobCreate = components["schemas"]["JobCreate"];

export interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

const PREFIX = "/api/v1";

const UNKNOWN: Problem = {
  type: "urn:loopwright:problem:unauthorized",
  title: "Unauthorized",
  status: 401,
};

export class ApiError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

/** Keep a token that the service takes; one that it does not is an error. */
export async function signIn(token: string): Promise<void> {
  // What no header can carry is no token.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new ApiError(UNKNOWN);
  const response = await ask("/caller", {}, token);
  if (!response.ok) throw new ApiError(await problemOf(response));
  signedIn(token);
}

/** Send a request; the caller reads the body. While the service requires a new token, none is sent. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const { token, wants } = session();
  if (wants) throw new ApiError(UNKNOWN);
  const response = await ask(path, init, token);
  if (response.status === UNKNOWN.status) refused(token);
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

async function ask(path: string, init: RequestInit, token: string | null): Promise<Response> {
  const given = init.headers as Record<string, string> | undefined;
  const headers = token ? { ...given, Authorization: `Bearer ${token}` } : given;
  try {
    const response = await fetch(PREFIX + path, { ...init, ...(headers ? { headers } : {}) });
    noteConnection(true);
    return response;
  } catch (error) {
    // A request that the page itself gave up says nothing about the service.
    if (!init.signal?.aborted) noteConnection(false);
    throw error;
  }
}

/** Ask whether the service answers; `useIsLost` gives the answer. */
export async function checkConnection(): Promise<void> {
  try {
    await fetch("/livez");
    noteConnection(true);
  } catch {
    noteConnection(false);
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const fallback = { type: "about:blank", title: response.statusText, status: response.status };
  try {
    return { ...fallback, ...(await response.json()) } as Problem;
  } catch {
    return { ...fallback, detail: "" } as Problem;
  }
}

export type Query = Record<
  string,
  string | number | boolean | null | undefined | readonly string[]
>;

/** The address of a query; what is not given is left out, and a list is repeated. */
export function address(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    (Array.isArray(value) ? (value as readonly string[]) : [value])
      .filter((one) => one != null && one !== "")
      .map((one) => [key, String(one)]),
  );
  const text = new URLSearchParams(pairs).toString();
  return text ? `${path}?${text}` : path;
}

export async function get<Body>(
  path: string,
  query: Query = {},
  signal?: AbortSignal,
): Promise<Body> {
  const response = await send(address(path, query), signal ? { signal } : {});
  return (await response.json()) as Body;
}

export async function post<Body>(
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<Body> {
  return sendBody("POST", path, body, more);
}

export async function patch<Body>(path: string, body: unknown): Promise<Body> {
  return sendBody("PATCH", path, body);
}

async function sendBody<Body>(
  method: string,
  path: string,
  body: unknown,
  more: Record<string, string> = {},
): Promise<Body> {
  const response = await send(path, {
    method,
    headers: { "Content-Type": "application/json", ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Body;
}
