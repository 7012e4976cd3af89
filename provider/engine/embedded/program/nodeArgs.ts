import { ProjectError } from "../../errors.ts";

/**
 * Splits a command line into words: blanks divide, single and double quotes group, a backslash takes the next
 * character as it is (not inside single quotes). Throws ProjectError for a quote that is not closed.
 */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (char === "\\" && quote !== "'") {
      word = (word ?? "") + (text[++i] ?? "");
    } else if (quote !== "") {
      if (char === quote) quote = "";
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") throw new ProjectError(`A quote is not closed in nodeargs: ${text}`);
  if (word !== undefined) words.push(word);
  return words;
}
