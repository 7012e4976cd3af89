import type { FastifyInstance } from "fastify";
import { inTransaction, within } from "../db/sql/transaction.ts";
import { refreshSubscription } from "../features/billing/subscription.ts";
import { settleInvoice } from "../payments/ledger/invoices.ts";
import type { Services } from "../services.ts";
import { parseRequest } from "./parseRequest.ts";
import { recordOperator } from "./recordOperator.ts";
import { invoiceQuery, type ListedInvoice, settleInvoiceRequest } from "./requests.ts";

/** Adds the routes with which an operator lists invoices, and marks them as paid, uncollectible or voided. */
export function registerInvoices(app: FastifyInstance, services: Services): void {
  app.get("/invoices", async (request): Promise<ListedInvoice[]> => {
    const { status, limit } = parseRequest(invoiceQuery, request.query);
    const rows = await services.db.ledgerInvoice.findMany({
      where: status === undefined ? {} : { status },
      include: { customer: { select: { name: true, email: true } } },
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
      take: limit,
    });
    return rows.map(({ id, customer, status, amount, currency, devices, createdAt }) => ({
      id,
      customer: customer.name,
      email: customer.email,
      status,
      amount: Number(amount),
      currency,
      devices,
      createdAt: createdAt.toISOString(),
    }));
  });

  app.post("/settle-invoice", async (request) => {
    const { id, status } = parseRequest(settleInvoiceRequest, request.body);
    const billing = await inTransaction(services, async (tx) => {
      const inside = within(services, tx);
      const { customerId, settledNow } = await settleInvoice(inside, id, status);
      const row = await tx.billing.findUnique({ where: { customerId } });
      if (!settledNow) return row;
      await recordOperator(inside, request, {
        tenantId: row?.tenantId ?? null,
        operation: "settle-invoice",
        object: { kind: "invoice", id },
        before: { status: "open" },
        after: { status },
      });
      return row;
    });
    // Updates the namespace's subscription immediately, without waiting for the next periodic refresh.
    if (billing) await refreshSubscription(services, billing.tenantId, billing.customerId);
    request.log.info({ invoice: id, status }, "invoice settled by an administrator");
    return { id, status };
  });
}
