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
  return sessionStorage.getItem(TOKEN_KEY);
}

export function keepToken(value: string): void {
  if (value) sessionStorage.setItem(TOKEN_KEY, value);
  else sessionStorage.removeItem(TOKEN_KEY);
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
