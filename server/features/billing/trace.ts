import type { Declared } from "../../changes/managedObject.ts";
import { recordChange } from "../../changes/recordChange.ts";
import type { Member } from "../../http/access/identity.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import type { Services } from "../../services.ts";

interface Request {
  readonly services: Services;
  readonly identity: Member;
  readonly request: RequestFacts;
}

/** Records an owner's change to the billing of a namespace in the audit trail. */
export async function recordBilling(
  { services, identity, request }: Request,
  operation: string,
  after: Declared,
  before: Declared | null = null,
): Promise<void> {
  await recordChange(services, {
    tenantId: identity.tenant,
    caller: identity.caller,
    request,
    operation,
    object: { kind: "billing", id: identity.tenant },
    before,
    after,
  });
}
