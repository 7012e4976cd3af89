import { REQUEST_SENTENCES } from "./requestSentences.ts";
import { capitalized } from "./sentence.ts";

/** The text that replaces a secret. */
const MASK = "[secret]";

/** Characters that terminals interpret, or that are invisible. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]+/gu;

/** Replaces control characters and invisible characters in a string from another program with spaces. */
export const withoutControls = (text: string): string => text.replace(UNPRINTABLE, " ");

/** A part of a string, from the index `start` to the index before `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Returns all occurrences of `part` in a string, including overlapping occurrences. */
function spansOf(text: string, part: string): Span[] {
  const spans: Span[] = [];
  for (let start = text.indexOf(part); start >= 0; start = text.indexOf(part, start + 1))
    spans.push({ start, end: start + part.length });
  return spans;
}

/**
 * Masks secrets in a string. A match inside one of this project's own sentences, such as an error text, is not masked:
 * the sentence is public, so a reader could derive the secret from the masked word. All other occurrences of a secret
 * are masked.
 * @param secrets strings to mask, in any order; empty strings are ignored
 * @param own further sentences of this project that the string may contain
 */
export function maskSecrets(text: string, secrets: readonly string[], own: readonly string[] = []): string {
  const found = secrets.filter((secret) => secret !== "").flatMap((secret) => spansOf(text, secret));
  if (found.length === 0) return text;
  // A secret that is equal to a whole sentence is masked, because the string may contain the secret instead of the
  // sentence.
  const sentences = [...REQUEST_SENTENCES, ...own]
    .filter((sentence) => sentence !== "" && !secrets.includes(sentence))
    // Also search for each sentence with a capital first letter, as at the start of a message.
    .flatMap((sentence) => [sentence, capitalized(sentence)])
    .flatMap((sentence) => spansOf(text, sentence))
    .sort((a, b) => a.start - b.start);
  let shown = "";
  let end = 0;
  let next = 0;
  /** The largest end index of the sentences that start before or at the current secret. */
  let ownEnd = 0;
  for (const span of found.sort((a, b) => a.start - b.start)) {
    for (
      let sentence = sentences[next];
      sentence && sentence.start <= span.start;
      sentence = sentences[++next]
    ) {
      ownEnd = Math.max(ownEnd, sentence.end);
    }
    if (span.end <= ownEnd) continue;
    // Overlapping secrets get one mask, so that no part of a secret remains.
    if (span.start >= end) shown += text.slice(end, span.start) + MASK;
    end = Math.max(end, span.end);
  }
  return shown + text.slice(end);
}
