// JSON with exact integers: those that a JavaScript number would round become BigInt.

const MARK = "\uE000exact:"; // no offset begins with this text
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARKED = new RegExp(`^${MARK}-?\\d+$`);
const WRITTEN = new RegExp(`"${MARK}(-?\\d+)"`, "g");

export function parse(text) {
  const marked = text.replace(TOKEN, (token) => (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token));
  return JSON.parse(marked, (_, value) => (typeof value === "string" && MARKED.test(value) ? BigInt(value.slice(MARK.length)) : value));
}

export const stringify = (value) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${MARK}${each}` : each))?.replace(WRITTEN, "$1");

// Convert digits to an integer.
export const whole = (digits) => (Number.isSafeInteger(Number(digits)) ? Number(digits) : BigInt(digits));
