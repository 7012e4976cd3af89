import type { Estate } from "../../../provider/estate/namespaceState.ts";
import { reviewMarkdown } from "../../../provider/review/report/markdown.ts";
import type { Review } from "../../../provider/review/report/review.ts";
import { type Allowed, objections } from "../../../provider/review/report/sections.ts";
import { type NamespaceReviewOptions, reviewNamespace } from "../../../provider/review/reviewNamespace.ts";
import { planOf, TENANT } from "./planned.ts";

/** The flags of a review that allows only unmanaged objects, which these namespaces have. */
const ALLOWED: Allowed = {
  ...{ allowLockout: false, allowUnmanaged: true, allowMissingPermissions: false },
  ...{ allowFindings: false, allowIncomplete: false },
};

const OPTIONS: NamespaceReviewOptions = {
  ...{ folder: undefined, home: TENANT, runningId: "user-owner", protect: [] },
  actor: { kind: "user", role: "owner" },
};

/** Reviews a plan of the namespace's owner. Returns the review, the comment with its title, and the blocking findings. */
export async function reviewed(live: Estate, ...steps: Parameters<typeof planOf>) {
  const { review } = await reviewNamespace(live, planOf(...steps), OPTIONS);
  const whole: Review = {
    ...{
      version: 1,
      project: "fleet",
      stack: "prod",
      engine: "embedded",
      service: "https://gate.example.org",
    },
    summary: { create: 0, update: 0, replace: 0, delete: 0, import: 0, same: 0 },
    ...{ changes: [], duplicateDeclarations: [], preflightFailures: [], notEvaluated: [], unknown: [] },
    namespaces: [review],
  };
  const comment = reviewMarkdown(whole, ALLOWED);
  const [, title = ""] = comment.split("\n");
  return { review, comment, title, blocking: objections(whole, ALLOWED) };
}
