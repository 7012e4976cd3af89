import { NotFoundError } from "../../errors.ts";
import type { Customer } from "../paymentGateway.ts";
import { type LedgerServices, newId, onceUnderKey } from "./ledgerServices.ts";

/** Creates a customer. Several calls with the same idempotency key create only one customer. */
export async function createCustomer(
  { db, now }: LedgerServices,
  { name, email }: { readonly name: string; readonly email: string },
  key: string,
): Promise<{ readonly id: string }> {
  return onceUnderKey(
    () => db.ledgerCustomer.findUnique({ where: { key }, select: { id: true } }),
    () =>
      db.ledgerCustomer.create({
        data: { id: newId("cus"), key, name, email, createdAt: now() },
        select: { id: true },
      }),
  );
}

/**
 * Reads a customer with its payment methods.
 * @throws NotFoundError the customer does not exist
 */
export async function readCustomer({ db }: LedgerServices, id: string): Promise<Customer> {
  const row = await db.ledgerCustomer.findUnique({
    where: { id },
    include: { paymentMethods: { orderBy: [{ attachedAt: "asc" }, { id: "asc" }] } },
  });
  if (!row) throw new NotFoundError("the ledger has no such customer");
  return {
    id,
    name: row.name,
    email: row.email,
    paymentMethods: row.paymentMethods.map(({ id, brand, last4, expMonth, expYear, isDefault }) => ({
      id,
      brand,
      last4,
      expMonth,
      expYear,
      isDefault,
    })),
  };
}
