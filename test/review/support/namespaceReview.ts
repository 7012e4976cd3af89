import { reviewMarkdown } from "../../../provider/review/report/markdown.ts";
import type { NamespaceReview, Review } from "../../../provider/review/report/review.ts";
import { type Allowed, objections } from "../../../provider/review/report/sections.ts";
import { type NamespaceReviewOptions, reviewNamespace } from "../../../provider/review/reviewNamespace.ts";
import type { Role } from "../../../sdk/contract/index.ts";
import { type NamespaceFixture, namespaceOf } from "./namespace.ts";
import { planOf, TENANT } from "./steps.ts";

/** The flags of a review that allows nothing. */
export const NOTHING_ALLOWED: Allowed = {
  allowLockout: false,
  allowUnmanaged: false,
  allowMissingPermissions: false,
  allowFindings: false,
  allowIncomplete: false,
};

/** The flags of a review that allows unmanaged objects, which these namespaces have, and missing permissions. */
export const ALLOWED: Allowed = { ...NOTHING_ALLOWED, allowUnmanaged: true, allowMissingPermissions: true };

/** Returns a review of a stack whose namespaces have these reviews. */
export const wholeReview = (...namespaces: readonly NamespaceReview[]): Review => ({
  version: 1,
  project: "fleet",
  stack: "prod",
  engine: "embedded",
  service: "https://gate.example.org",
  summary: { create: 0, update: 0, replace: 0, delete: 0, import: 0, same: 0 },
  changes: [],
  duplicateDeclarations: [],
  preflightFailures: [],
  notEvaluated: [],
  unknown: [],
  newNamespaces: { namespaces: 0, resources: 0 },
  namespaces,
});

type Steps = Parameters<typeof planOf>;

/** Reviews a plan in a namespace. By default an administrator runs the review. */
export async function namespaceReview(
  live: NamespaceFixture,
  plan: ReturnType<typeof planOf>,
  options: Partial<NamespaceReviewOptions> = {},
): Promise<NamespaceReview> {
  const { review } = await reviewNamespace(namespaceOf(live), plan, {
    home: TENANT,
    runningId: "me",
    protect: [],
    actor: { kind: "user", role: "administrator" },
    ...options,
  });
  return review;
}

/** Reviews a plan of the namespace's owner. Returns the review, the comment with its title, and the blocking findings. */
export const reviewed = (live: NamespaceFixture, ...steps: Steps) => reviewedBy("owner", live, ...steps);

/** Reviews a plan as {@link reviewed}, with the credential of a user with a role. */
export async function reviewedBy(role: Role, live: NamespaceFixture, ...steps: Steps) {
  const actor = { kind: "user", role } as const;
  const review = await namespaceReview(live, planOf(...steps), { runningId: "user-owner", actor });
  const whole = wholeReview(review);
  const comment = reviewMarkdown(whole, ALLOWED);
  const [, title = ""] = comment.split("\n");
  return { review, comment, title, blocking: objections(whole, ALLOWED) };
}
