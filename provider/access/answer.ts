import type { Estate } from "../estate/namespaceState.ts";
import { accessCsv } from "./csv.ts";
import { domainLines, unknownLines } from "./domainText.ts";
import { accessExplanation } from "./explain.ts";
import { explanationText } from "./explainText.ts";
import type { AccessInquiry } from "./inquiry.ts";
import { type AccessExplanationReport, accessJson } from "./json.ts";
import { accessTable } from "./table.ts";
import { type AccessView, accessView } from "./view.ts";

/** The answer to an inquiry about access. */
export interface AccessAnswer {
  /** The parts of the text. Those of a large text are made while they are read. */
  readonly output: Iterable<string>;
  /** Lines for people that the form of the output has no place for. */
  readonly remarks: readonly string[];
  /** Whether the login that is to be explained is refused. */
  readonly refused: boolean;
  /** Whether the answer leaves out what could not be looked at. */
  readonly unseen: boolean;
}

/**
 * Who can reach what in a namespace, or why.
 * @throws AccessInquiryError where a device or key is asked about that the namespace does not have, or `explain` is asked
 * of more than one key and device
 */
export function accessAnswer(estate: Estate, inquiry: AccessInquiry): AccessAnswer {
  const view = accessView(estate, inquiry);
  const answer = { remarks: [], refused: false, unseen: estate.unseen.length > 0 };
  if (inquiry.explain) return { ...answer, ...explained(view) };
  if (inquiry.format === "json") return { ...answer, output: accessJson(view) };
  if (inquiry.format === "text") return { ...answer, output: accessTable(view) };
  return { ...answer, output: accessCsv(view), remarks: [...domainLines(view), ...unknownLines(view)] };
}

function explained(view: AccessView): Pick<AccessAnswer, "output" | "refused"> {
  const explanation = accessExplanation(view);
  const { tenant: namespace, unseen, unknown } = view.estate;
  const report: AccessExplanationReport = { namespace, unseen, unknown, notes: view.notes, ...explanation };
  const output =
    view.inquiry.format === "json"
      ? `${JSON.stringify(report, null, 1)}\n`
      : explanationText(view, explanation);
  return { output: [output], refused: !explanation.allowed };
}
