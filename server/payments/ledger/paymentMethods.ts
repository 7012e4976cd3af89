import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError, PaymentGatewayError } from "../../errors.ts";
import type { LedgerServices } from "./ledgerServices.ts";
import { LIVING } from "./states.ts";

/**
 * Maximum number of payment methods of a customer. The limit is necessary because a namespace owner can add any number
 * of payment methods, and each one is a database row.
 */
const MOST = 10;

/**
 * The format of a payment method's id, such as `pm_visa_4242_203010_5f3a`. The id contains the brand, the last digits
 * of the card number, and the year and month of the card's expiry.
 */
const ID =
  /^pm_(?<brand>[a-z]{2,16})_(?<last4>\d{4})_(?<year>20\d\d)(?<month>0[1-9]|1[0-2])_[A-Za-z0-9-]{1,64}$/;

const unknown = () => new NotFoundError("id: no payment method of the ledger has this id");

/**
 * Parses the id of a payment method.
 * @throws NotFoundError the id does not have the ledger's format
 */
function read(id: string) {
  const { brand = "", last4 = "", year, month } = ID.exec(id)?.groups ?? {};
  if (year === undefined) throw unknown();
  return { id, brand, last4, expMonth: Number(month), expYear: Number(year) };
}

/**
 * Adds a payment method to a customer.
 * @throws NotFoundError the customer or the payment method does not exist
 * @throws ForbiddenError the customer has the maximum number of payment methods
 * @throws PaymentGatewayError the card has expired (code `expired_card`)
 */
export function attach(services: LedgerServices, customerId: string, id: string): Promise<void> {
  const method = read(id);
  const attachedAt = services.now();
  // A card is valid until the end of its expiry month.
  const expired = new Date(Date.UTC(method.expYear, method.expMonth)) <= attachedAt;
  if (expired) throw new PaymentGatewayError("expired_card");
  return inTransaction(services, async (tx) => {
    const known = await methodsOf(tx, customerId);
    if (known.some((other) => other.id === id)) return;
    if (known.length >= MOST) throw new ForbiddenError(`a customer can have at most ${MOST} payment methods`);
    await tx.ledgerPaymentMethod.create({
      data: { ...method, customerId, attachedAt, isDefault: known.length === 0 },
    });
  });
}

/**
 * Removes a payment method. Has no effect if the customer does not have the payment method.
 * @throws ForbiddenError the payment method is the last one of a customer with a subscription
 */
export function detach(services: LedgerServices, customerId: string, id: string): Promise<void> {
  read(id);
  return inTransaction(services, async (tx) => {
    const known = await methodsOf(tx, customerId);
    const method = known.find((other) => other.id === id);
    if (!method) return;
    const [next] = known.filter((other) => other !== method);
    if (!next && (await tx.ledgerSubscription.count({ where: { customerId, status: { in: LIVING } } })) > 0) {
      throw new ForbiddenError(
        "id: a running subscription has no other payment method; add another one or cancel the subscription first",
      );
    }
    await tx.ledgerPaymentMethod.delete({ where: { customerId_id: { customerId, id } } });
    if (method.isDefault && next) await makeDefault(tx, customerId, next.id);
  });
}

/**
 * Changes the default payment method of a customer.
 * @throws NotFoundError the customer does not have the payment method
 */
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
