/** Most levels of arrays and objects in JSON that is read: code that walks through a value calls itself for each level. */
export const DEEPEST_JSON = 500;

/** Thrown where JSON has more levels than {@link DEEPEST_JSON}. Like the error for a text that is no JSON, a SyntaxError. */
export class JsonDepthError extends SyntaxError {
  override readonly name = "JsonDepthError";
  readonly code = "json_depth";
  /** How many levels are allowed. */
  readonly limit = DEEPEST_JSON;

  constructor() {
    super(`it is nested deeper than ${DEEPEST_JSON} levels`);
  }
}

/**
 * Parses JSON that comes from outside. The levels are counted before anything is made of the text, which takes less than
 * half as long as parsing it: an array inside another one takes far more memory than its two characters.
 * @throws SyntaxError where the text is no JSON; JsonDepthError
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) throw new JsonDepthError();
  return JSON.parse(text);
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === ARRAY || char === OBJECT) depth += 1;
    else if (char === ARRAY_END || char === OBJECT_END) depth -= 1;
    if (depth > DEEPEST_JSON) return true;
  }
  return false;
}

/** Where the string ends that begins at `start`; the text's end, where it does not. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    // Backslashes in pairs stand for themselves.
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}
