import { inTransaction, type Transaction } from "../../db/transaction.ts";
import { ForbiddenError, GatewayError, NotFoundError } from "../../errors.ts";
import type { LedgerServices } from "./ledgerServices.ts";
import { LIVING } from "./states.ts";

/** Payment methods of a customer: each is a row that its owner can make. */
const MOST = 10;

/** `pm_visa_4242_203010_5f3a`: brand, last digits, and year and month of the expiry stand in the id. */
const ID =
  /^pm_(?<brand>[a-z]{2,16})_(?<last4>\d{4})_(?<year>20\d\d)(?<month>0[1-9]|1[0-2])_[A-Za-z0-9-]{1,64}$/;

const unknown = () => new NotFoundError("id: the ledger has no such payment method");

/** @throws NotFoundError not an id of the ledger's */
function read(id: string) {
  const { brand = "", last4 = "", year, month } = ID.exec(id)?.groups ?? {};
  if (year === undefined) throw unknown();
  return { id, brand, last4, expMonth: Number(month), expYear: Number(year) };
}

/**
 * @throws NotFoundError unknown customer or payment method
 * @throws ForbiddenError the customer has as many as it may
 * @throws GatewayError expired_card
 */
export function attach(services: LedgerServices, customerId: string, id: string): Promise<void> {
  const method = read(id);
  const attachedAt = services.now();
  // It can be used until the end of the month that it names.
  const expired = new Date(Date.UTC(method.expYear, method.expMonth)) <= attachedAt;
  if (expired) throw new GatewayError("expired_card");
  return inTransaction(services, async (tx) => {
    const known = await methodsOf(tx, customerId);
    if (known.some((other) => other.id === id)) return;
    if (known.length >= MOST) throw new ForbiddenError(`a customer may have ${MOST} payment methods at most`);
    await tx.ledgerPaymentMethod.create({
      data: { ...method, customerId, attachedAt, isDefault: known.length === 0 },
    });
  });
}

/**
 * Takes a payment method away; one that the customer does not have is gone already.
 * @throws ForbiddenError it is the last one of a running subscription
 */
export function detach(services: LedgerServices, customerId: string, id: string): Promise<void> {
  read(id);
  return inTransaction(services, async (tx) => {
    const known = await methodsOf(tx, customerId);
    const method = known.find((other) => other.id === id);
    if (!method) return;
    const [next] = known.filter((other) => other !== method);
    if (!next && (await tx.ledgerSubscription.count({ where: { customerId, status: { in: LIVING } } })) > 0) {
      throw new ForbiddenError("id: is the last payment method of a running subscription");
    }
    await tx.ledgerPaymentMethod.delete({ where: { customerId_id: { customerId, id } } });
    if (method.isDefault && next) await makeDefault(tx, customerId, next.id);
  });
}

/** @throws NotFoundError the customer does not have it */
export function setDefault(services: LedgerServices, customerId: string, id: string): Promise<void> {
  return inTransaction(services, async (tx) => {
    const known = await methodsOf(tx, customerId);
    if (!known.some((method) => method.id === id)) throw unknown();
    await makeDefault(tx, customerId, id);
  });
}

async function methodsOf(tx: Transaction, customerId: string) {
  const customer = await tx.ledgerCustomer.findUnique({
    where: { id: customerId },
    select: { paymentMethods: { orderBy: [{ attachedAt: "asc" }, { id: "asc" }] } },
  });
  if (!customer) throw new NotFoundError("the ledger has no such customer");
  return customer.paymentMethods;
}

async function makeDefault(tx: Transaction, customerId: string, id: string): Promise<void> {
  await tx.ledgerPaymentMethod.updateMany({
    where: { customerId, id: { not: id }, isDefault: true },
    data: { isDefault: false },
  });
  await tx.ledgerPaymentMethod.update({
    where: { customerId_id: { customerId, id } },
    data: { isDefault: true },
  });
}
