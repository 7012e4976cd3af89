import { Argument, type Command, Option } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type { ListedInvoice, SettleInvoiceRequest } from "../admin/requests.ts";
import { SETTLEMENTS, type Settlement } from "../payments/ledger/invoices.ts";
import type { Flags } from "../settings/readConfig.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { folderOf, subcommand } from "./subcommand.ts";
import { formatTable } from "./table.ts";

interface InvoiceFlags extends Flags {
  readonly status?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** Formats an amount: `1250` in usd becomes `12.50 usd`. */
const money = ({ amount, currency }: ListedInvoice): string => `${(amount / 100).toFixed(2)} ${currency}`;

async function list(io: CommandIo, flags: InvoiceFlags): Promise<void> {
  const query = new URLSearchParams({ limit: flags.limit, ...(flags.status && { status: flags.status }) });
  const invoices = await callAdmin<ListedInvoice[]>(folderOf(io, flags), "GET", `/invoices?${query}`);
  if (flags.json) return print(io, JSON.stringify(invoices));
  const header = ["ID", "MADE", "CUSTOMER", "E-MAIL", "DEVICES", "AMOUNT", "STATUS"];
  const rows = invoices.map((invoice) => [
    invoice.id,
    invoice.createdAt,
    invoice.customer,
    invoice.email,
    String(invoice.devices),
    money(invoice),
    invoice.status,
  ]);
  print(io, formatTable([header, ...rows]));
}

async function settle(io: CommandIo, id: string, status: Settlement, flags: Flags): Promise<void> {
  const request: SettleInvoiceRequest = { id, status };
  await callAdmin(folderOf(io, flags), "POST", "/settle-invoice", request);
  print(io, `The invoice ${id} is ${status}`);
}

/** `gatehouse-server admin invoices` and `settle-invoice`: list and settle invoices of the ledger. */
export function invoiceCommands(io: CommandIo): Command[] {
  return [
    subcommand("invoices", "List the ledger's invoices, the latest first")
      .addOption(new Option("--status <status>", "Only these").choices(["open", ...SETTLEMENTS]))
      .option("--limit <number>", "How many, 1 to 1000", "50")
      .option("--json", "Print JSON, with amounts in hundredths")
      .action((flags: InvoiceFlags) => list(io, flags)),
    subcommand("settle-invoice", "Say what became of an open invoice of the ledger")
      .argument("<id>", "Id of the invoice")
      .addArgument(new Argument("<status>", "What became of it").choices(SETTLEMENTS))
      .action((id: string, status: Settlement, flags: Flags) => settle(io, id, status, flags)),
  ];
}
