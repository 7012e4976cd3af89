/**
 * Maximum number of nested levels of arrays and objects in JSON. The limit prevents a stack overflow of recursive
 * functions.
 */
export const DEEPEST_JSON = 500;

/**
 * Thrown when JSON has more nested levels than {@link DEEPEST_JSON}. The class extends SyntaxError, which is also
 * thrown for a string that is not JSON.
 */
export class JsonDepthError extends SyntaxError {
  override readonly name = "JsonDepthError";
  readonly code = "json_depth";
  /** Maximum number of nested levels. */
  readonly limit = DEEPEST_JSON;

  constructor() {
    super(`it is nested deeper than ${DEEPEST_JSON} levels`);
  }
}

/**
 * Parses JSON from an untrusted source. The function counts the nested levels before it parses the string, because each
 * pair of brackets becomes an array that takes far more memory than the two characters. Counting takes less than half
 * the time of parsing.
 * @throws SyntaxError when the string is not JSON
 * @throws JsonDepthError when the JSON has too many nested levels
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

/**
 * Returns the index of the closing quote of the JSON string that begins at `start`, or the length of the text if there
 * is no closing quote.
 */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    // A quote after an even number of backslashes is not escaped and ends the string.
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}
