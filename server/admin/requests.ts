import { announcements, email, password, tenantId, username } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { SETTLEMENTS } from "../payments/ledger/invoices.ts";

/**
 * The request of the command `user create`. The schemas in this file define the requests and responses of the
 * administration socket.
 */
export const createUserRequest = z.object({
  name: z.string().min(1).max(64),
  username,
  email,
  password,
  /** Maximum number of namespaces that the user may own. -1: no limit; 0: no namespaces. */
  maxNamespaces: z.int().min(-1).max(1_000_000),
});

export const resetPasswordRequest = z.object({
  /** Username or e-mail address of the user. */
  user: z.string().min(1).max(254),
  password,
});

/** A request for one user. Identifies the user in the same way as {@link resetPasswordRequest}. */
export const userRequest = resetPasswordRequest.pick({ user: true });

export const rotateSigningKeyRequest = z.object({
  /** True to reject tokens that were signed with older keys. */
  revoke: z.boolean(),
});

/**
 * The query parameters of the command `audit`. If `tenant` is omitted, the query selects the entries that have no
 * namespace.
 */
export const auditQuery = z.object({
  tenant: tenantId.optional(),
  limit: z.coerce.number().int().min(1).max(1000),
});

/** Query of `invoices`. */
export const invoiceQuery = z.object({
  status: z.enum(["open", ...SETTLEMENTS]).optional(),
  limit: z.coerce.number().int().min(1).max(1000),
});

export const settleInvoiceRequest = z.object({ id: z.string().min(1).max(64), status: z.enum(SETTLEMENTS) });

export type SettleInvoiceRequest = z.output<typeof settleInvoiceRequest>;

export interface ListedInvoice {
  readonly id: string;
  /** The customer's name. */
  readonly customer: string;
  readonly email: string;
  readonly status: string;
  /** Amount in minor units of the currency, such as cents. */
  readonly amount: number;
  readonly currency: string;
  readonly devices: number;
  readonly createdAt: string;
}

/** Maximum length of an announcement's text, in characters. */
const ANNOUNCEMENT_MAX = 65_536;

export const createAnnouncementRequest = z.object({
  title: announcements.announcementTitle,
  /** Text in Markdown. */
  content: z.string().min(1).max(ANNOUNCEMENT_MAX),
});

/** Request that identifies one announcement. */
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

export const confirmAddressRequest = userRequest.extend({ address: email });

export type ConfirmAddressRequest = z.output<typeof confirmAddressRequest>;

/**
 * The response to the command `user confirm-address`. `field` is the name of the user field that contains the confirmed
 * address.
 */
export interface ConfirmedAddress {
  readonly id: string;
  readonly field: "email" | "recoveryEmail";
}

export interface SetupLink {
  readonly sign: string;
  readonly url: string;
  /** True if the first user already exists. In this case, the service rejects the setup link. */
  readonly used: boolean;
}

/**
 * Response header of a database copy: the number of rows that the service wrote after it started and before the copy.
 */
export const CHANGES_HEADER = "x-gatehouse-changes";

export interface DatabaseChanges {
  /** Number of rows that the service has written since its start. */
  readonly changes: number;
}
