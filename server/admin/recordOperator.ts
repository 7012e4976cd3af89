import { type Change, recordChange } from "../changes/recordChange.ts";
import type { Services } from "../services.ts";

/**
 * The audit trail entry for a change by an operator. Without `tenantId`, the entry belongs to no namespace. Without
 * `before` or `after`, the entry does not contain the fields of the object before or after the change.
 */
type OperatorChange = Pick<Change, "operation" | "object"> &
  Partial<Pick<Change, "tenantId" | "before" | "after">>;

/** Adds an operator's change to the audit trail. */
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
