// Formatting of values.

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 3 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });

export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));
export const rate = (number) => (number === undefined ? "–" : number >= 10000 ? short.format(number) : whole.format(Math.round(number)));
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function time(milliseconds) {
  const found = new Date(milliseconds);
  return Number.isNaN(found.getTime()) ? String(milliseconds) : moment.format(found); // beyond the range of Date
}

export function size(bytes) {
  return bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

export const simpleName = (className) => (className ?? "").split(/[.:]/).pop();

// Indent JSON text; leave other text unchanged. Numbers keep their digits, unlike with JSON.parse.
export function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|[{}[\],:]/g)) {
    if (token === "{" || token === "[") {
      depth += 1;
      out += token + line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      out = /[{[]\s*$/.test(out) ? out.trimEnd() + token : out + line() + token;
    } else if (token === ",") out += token + line();
    else if (token === ":") out += ": ";
    else out += token;
  }
  return out;
}
