import { GatehouseError } from "@gatehouse-access/sdk";

/** A question about access makes no sense, or names what is not there. */
export class AccessQueryError extends GatehouseError {
  override readonly name = "AccessQueryError";
}
