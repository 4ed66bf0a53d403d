// Requests to the worker that served this page. Paths are relative, so that they work behind a proxy's path prefix.

import * as exact from "./exact.js";

const ROOT = new URL("../", document.baseURI);

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const get = (path, options) => call("GET", path, undefined, options);
export const post = (path, body) => call("POST", path, body);
export const put = (path, body, options) => call("PUT", path, body, options);
export const patch = (path, body) => call("PATCH", path, body);
export const remove = (path) => call("DELETE", path);

// The path of a connector; its name may contain any character.
export function connectorPath(name, rest = "") {
  if (!isAddressable(name)) {
    throw new ApiError(0, `The REST API cannot address a connector named “${name}”: of a path, “/”, “%”, “.” and “..” have another meaning.`);
  }
  return `connectors/${encodeURIComponent(name)}${rest}`;
}

export const isAddressable = (name) => !/[/%]/.test(name) && name !== "." && name !== "..";

// `keepsNumbers`: integers beyond 2^53 become BigInt.
async function call(method, path, body, { signal, keepsNumbers } = {}) {
  const request = { method, signal, headers: { Accept: "application/json" }, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = exact.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(new URL(path, ROOT), request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The worker does not answer.");
  }
  const text = await answer.text();
  let said = null;
  try {
    said = text ? (keepsNumbers ? exact : JSON).parse(text) : null;
  } catch {
    said = null;
  }
  if (!answer.ok) throw new ApiError(answer.status, said?.message || text.trim() || `The worker answered ${answer.status}.`);
  return said;
}
