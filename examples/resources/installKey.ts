import { InstallKey } from "@gatehouse-access/provider";

export const warehouse = new InstallKey("warehouse", {
  name: "warehouse",
  mode: "allowlist",
  allowedMacs: ["02:00:00:00:00:01", "02:00:00:00:00:02"],
  tags: ["warehouse"],
  validDays: 30,
});

// The secret is encrypted in the state. Print it with `pulumi stack output --show-secrets`.
export const warehouseKey = warehouse.key;
