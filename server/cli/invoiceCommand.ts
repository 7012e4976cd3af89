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

/** Documentation page about invoices, for the help of the commands. */
const PAGE = "docs/operate/billing.md";

/** Formats an amount: `1250` in usd becomes `12.50 usd`. */
const money = ({ amount, currency }: ListedInvoice): string => `${(amount / 100).toFixed(2)} ${currency}`;

async function list(io: CommandIo, flags: InvoiceFlags): Promise<void> {
  const query = new URLSearchParams({ limit: flags.limit, ...(flags.status && { status: flags.status }) });
  const invoices = await callAdmin<ListedInvoice[]>(folderOf(io, flags), "GET", `/invoices?${query}`);
  if (flags.json) return print(io, JSON.stringify(invoices));
  const header = ["ID", "CREATED", "CUSTOMER", "E-MAIL", "DEVICES", "AMOUNT", "STATUS"];
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
  print(io, `The invoice ${id} is ${status}.`);
}

/**
 * Creates the commands `gatehouse-server admin invoices` and `gatehouse-server admin settle-invoice`. They list and
 * settle the invoices of the ledger.
 */
export function invoiceCommands(io: CommandIo): Command[] {
  return [
    subcommand("admin invoices", "List the invoices of the ledger, latest first.", "--status open", {
      page: PAGE,
    })
      .addOption(
        new Option("--status <status>", "List only invoices with this status").choices([
          "open",
          ...SETTLEMENTS,
        ]),
      )
      .option("--limit <number>", "Maximum number of invoices, 1 to 1000", "50")
      .option("--json", "Print the invoices as JSON, with amounts in minor units such as cents")
      .action((flags: InvoiceFlags) => list(io, flags)),
    subcommand("admin settle-invoice", "Set the status of an open invoice of the ledger.", "<id> paid", {
      page: PAGE,
    })
      .argument("<id>", "Id of the invoice")
      .addArgument(new Argument("<status>", "New status of the invoice").choices(SETTLEMENTS))
      .action((id: string, status: Settlement, flags: Flags) => settle(io, id, status, flags)),
  ];
}
