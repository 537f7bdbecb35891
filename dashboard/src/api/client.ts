/** Calls of the REST API. An answer that is not 2xx becomes an `ApiError` with its problem document. */

import type { components } from "./schema";

export type Job = components["schemas"]["JobRead"];
export type Trial = components["schemas"]["TrialRead"];
export type TrialCode = components["schemas"]["TrialCode"];
export type Worker = components["schemas"]["WorkerRead"];
export type CostModel = components["schemas"]["CostModelRead"];
export type Problem = components["schemas"]["Problem"];
export type Best = components["schemas"]["BestRead"];
export type JobCreate = components["schemas"]["JobCreate"];

export interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

const PREFIX = "/api/v1";
const TOKEN_KEY = "loopwright.token";

export class ApiError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

export function token(): string | null {
  return localStorage.getItem(TOKEN_KEY);
}

export function keepToken(value: string): void {
  if (value) localStorage.setItem(TOKEN_KEY, value);
  else localStorage.removeItem(TOKEN_KEY);
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  const known = token();
  return known ? { ...more, Authorization: `Bearer ${known}` } : more;
}

/** Send a request; the caller reads the body. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const given = init.headers as Record<string, string> | undefined;
  const response = await fetch(PREFIX + path, { ...init, headers: headers(given) });
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const fallback = { type: "about:blank", title: response.statusText, status: response.status };
  try {
    return { ...fallback, ...(await response.json()) } as Problem;
  } catch {
    return { ...fallback, detail: "" } as Problem;
  }
}

export async function get<Body>(
  path: string,
  query: Record<string, string | number | null | undefined> = {},
  signal?: AbortSignal,
): Promise<Body> {
  const given = Object.entries(query).filter(([, value]) => value != null && value !== "");
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  const response = await send(text ? `${path}?${text}` : path, signal ? { signal } : {});
  return (await response.json()) as Body;
}

export async function post<Body>(
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<Body> {
  const response = await send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Body;
}
