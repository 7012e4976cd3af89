import { type Change, recordChange } from "../changes/recordChange.ts";
import type { Services } from "../services.ts";

/** What an operator did; left out: about no namespace, and nothing before or after it. */
type OperatorChange = Pick<Change, "operation" | "object"> &
  Partial<Pick<Change, "tenantId" | "before" | "after">>;

/** Keeps in the audit trail what somebody did at the administration socket. */
export function recordOperator(
  services: Services,
  request: { readonly id: string },
  change: OperatorChange,
): Promise<void> {
  return recordChange(services, {
    tenantId: null,
    before: null,
    after: null,
    ...change,
    caller: { kind: "operator" },
    request: { id: request.id, address: "" },
  });
}
