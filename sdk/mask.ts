import { REQUEST_SENTENCES } from "./requestSentences.ts";

/** The text that replaces a secret. */
const MASK = "[secret]";

/** A part of a text: from `start` to before `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** All occurrences of a part, also those that overlap. */
function spansOf(text: string, part: string): Span[] {
  const spans: Span[] = [];
  for (let start = text.indexOf(part); start >= 0; start = text.indexOf(part, start + 1))
    spans.push({ start, end: start + part.length });
  return spans;
}

/**
 * The text with its secrets masked. The words of this project's own sentences stay as they are, even where a secret is
 * equal to one of them: a sentence that is the same for every secret reveals none, while a mask in a well-known sentence
 * reveals that the secret is the missing word. The rest of the text comes from outside, so every occurrence is masked.
 * @param secrets texts to mask, in any order; empty ones are ignored
 * @param own further sentences of this project that the text may contain
 */
export function maskSecrets(text: string, secrets: readonly string[], own: readonly string[] = []): string {
  const found = secrets.filter((secret) => secret !== "").flatMap((secret) => spansOf(text, secret));
  if (found.length === 0) return text;
  const sentences = [...REQUEST_SENTENCES, ...own].flatMap((sentence) =>
    sentence === "" ? [] : spansOf(text, sentence),
  );
  // A secret that is a whole sentence is masked: elsewhere the same text may be the secret.
  const isOwn = ({ start, end }: Span) =>
    sentences.some(
      (sentence) =>
        sentence.start <= start && end <= sentence.end && sentence.end - sentence.start > end - start,
    );
  const hidden = found.filter((span) => !isOwn(span)).sort((a, b) => a.start - b.start);
  let shown = "";
  let end = 0;
  for (const span of hidden) {
    // Secrets that overlap get one mask, so that no part of either stays.
    if (span.start >= end) shown += text.slice(end, span.start) + MASK;
    end = Math.max(end, span.end);
  }
  return shown + text.slice(end);
}
