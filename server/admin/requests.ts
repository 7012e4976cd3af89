import { announcements, email, password, tenantId, username } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { SETTLEMENTS } from "../payments/ledger/invoices.ts";

/** What the commands of `gatehouse-server admin` send to the running service, over its local socket. */
export const createUserRequest = z.object({
  name: z.string().min(1).max(64),
  username,
  email,
  password,
  /** -1: no limit, 0: none. */
  maxNamespaces: z.int().min(-1).max(1_000_000),
});

export const resetPasswordRequest = z.object({
  /** Username or e-mail. */
  user: z.string().min(1).max(254),
  password,
});

/** A command about one user, named as in {@link resetPasswordRequest}. */
export const userRequest = resetPasswordRequest.pick({ user: true });

/** What `rotate-signing-key` sends. */
export const rotateSigningKeyRequest = z.object({
  /** True: nothing is believed any more that older keys have signed. */
  revoke: z.boolean(),
});

/** What `audit` asks for; without a tenant, what belongs to no namespace. */
export const auditQuery = z.object({
  tenant: tenantId.optional(),
  limit: z.coerce.number().int().min(1).max(1000),
});

/** What `invoices` asks for. */
export const invoiceQuery = z.object({
  status: z.enum(["open", ...SETTLEMENTS]).optional(),
  limit: z.coerce.number().int().min(1).max(1000),
});

/** What `settle-invoice` sends. */
export const settleInvoiceRequest = z.object({ id: z.string().min(1).max(64), status: z.enum(SETTLEMENTS) });

export type SettleInvoiceRequest = z.output<typeof settleInvoiceRequest>;

export interface ListedInvoice {
  readonly id: string;
  /** The customer's name. */
  readonly customer: string;
  readonly email: string;
  readonly status: string;
  /** In hundredths of the currency. */
  readonly amount: number;
  readonly currency: string;
  readonly devices: number;
  readonly createdAt: string;
}

/** Longest text of an announcement, in characters. */
const ANNOUNCEMENT_MAX = 65_536;

export const createAnnouncementRequest = z.object({
  title: announcements.announcementTitle,
  /** Markdown. */
  content: z.string().min(1).max(ANNOUNCEMENT_MAX),
});

/** A command about one announcement. */
export const announcementRequest = z.object({ uuid: z.uuid().toLowerCase() });

export type CreateAnnouncementRequest = z.output<typeof createAnnouncementRequest>;
export type AnnouncementRequest = z.output<typeof announcementRequest>;

export interface ListedAnnouncement {
  readonly uuid: string;
  readonly title: string;
  readonly date: string;
}

export type CreateUserRequest = z.output<typeof createUserRequest>;
export type ResetPasswordRequest = z.output<typeof resetPasswordRequest>;

export type UserRequest = z.output<typeof userRequest>;
export type RotateSigningKeyRequest = z.output<typeof rotateSigningKeyRequest>;

export interface ListedUser {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly name: string;
  readonly status: string;
  readonly maxNamespaces: number;
  readonly createdAt: string;
}

/** What `user confirm-address` sends. */
export const confirmAddressRequest = userRequest.extend({ address: email });

export type ConfirmAddressRequest = z.output<typeof confirmAddressRequest>;

/** What it answers: which address of the user it is from now on. */
export interface ConfirmedAddress {
  readonly id: string;
  readonly field: "email" | "recoveryEmail";
}

export interface SetupLink {
  readonly sign: string;
  readonly url: string;
  /** A user exists, so the service refuses the link from now on. */
  readonly used: boolean;
}

/** How many rows the service has written since it was started, and before the copy that the answer holds. */
export const CHANGES_HEADER = "x-gatehouse-changes";

export interface DatabaseChanges {
  /** Rows that the service has written since it was started. */
  readonly changes: number;
}
