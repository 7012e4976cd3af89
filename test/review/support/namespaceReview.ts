import { reviewMarkdown } from "../../../provider/review/report/markdown.ts";
import type { Review } from "../../../provider/review/report/review.ts";
import { type Allowed, objections } from "../../../provider/review/report/sections.ts";
import { reviewNamespace } from "../../../provider/review/reviewNamespace.ts";
import type { Role } from "../../../sdk/contract/index.ts";
import { type NamespaceFixture, namespaceOf } from "./namespace.ts";
import { planOf, TENANT } from "./planned.ts";

/** The flags of a review that allows unmanaged objects, which these namespaces have, and missing permissions. */
const ALLOWED: Allowed = {
  allowLockout: false,
  allowUnmanaged: true,
  allowMissingPermissions: true,
  allowFindings: false,
  allowIncomplete: false,
};

type Steps = Parameters<typeof planOf>;

/** Reviews a plan of the namespace's owner. Returns the review, the comment with its title, and the blocking findings. */
export const reviewed = (live: NamespaceFixture, ...steps: Steps) => reviewedBy("owner", live, ...steps);

/** Reviews a plan as {@link reviewed}, with the credential of a user with a role. */
export async function reviewedBy(role: Role, live: NamespaceFixture, ...steps: Steps) {
  const { review } = await reviewNamespace(namespaceOf(live), planOf(...steps), {
    home: TENANT,
    runningId: "user-owner",
    protect: [],
    actor: { kind: "user", role },
  });
  const whole: Review = {
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
    namespaces: [review],
  };
  const comment = reviewMarkdown(whole, ALLOWED);
  const [, title = ""] = comment.split("\n");
  return { review, comment, title, blocking: objections(whole, ALLOWED) };
}
