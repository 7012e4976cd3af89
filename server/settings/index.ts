import { z } from "zod";
import { billingSettings } from "./billingSettings.ts";
import { clientSettings } from "./clientSettings.ts";
import { databaseSettings } from "./databaseSettings.ts";
import { deviceSettings } from "./deviceSettings.ts";
import { listenSettings } from "./listenSettings.ts";
import { mailSettings } from "./mailSettings.ts";
import { operationSettings } from "./operationSettings.ts";
import { rateSettings } from "./rateSettings.ts";
import { retentionSettings } from "./retentionSettings.ts";
import { samlSettings } from "./samlSettings.ts";
import { type Setting, setting } from "./setting.ts";
import { sshSettings } from "./sshSettings.ts";
import { wholeNumber } from "./values.ts";

export type { Setting };

/** All settings of the service, in the order of the help. */
export const settings = {
  dataDir: setting({
    variable: "GATEHOUSE_DATA_DIR",
    flag: "--data-dir",
    value: "folder",
    about: "Folder of the database, the instance secret and the administration socket",
    allowed: "the path of a folder",
    fallback: "gatehouse-data",
    schema: z.string().min(1),
  }),
  ...listenSettings,
  ...sshSettings,
  ...databaseSettings,
  edition: setting({
    variable: "GATEHOUSE_EDITION",
    flag: "--edition",
    value: "name",
    about: "Which operations are served: community, enterprise or cloud",
    allowed: "community, enterprise or cloud",
    fallback: "enterprise",
    schema: z.enum(["community", "enterprise", "cloud"]),
  }),
  ...mailSettings,
  maximumLockout: setting({
    variable: "GATEHOUSE_MAXIMUM_LOCKOUT",
    flag: "--maximum-lockout",
    value: "minutes",
    about: "Longest lockout after wrong logins, in minutes; 0 or less: no lockouts",
    allowed: "a whole number of minutes",
    fallback: "60",
    schema: wholeNumber,
  }),
  ...deviceSettings,
  ...rateSettings,
  ...clientSettings,
  ...samlSettings,
  ...billingSettings,
  geoipFile: setting({
    variable: "GATEHOUSE_GEOIP_FILE",
    flag: "--geoip-file",
    value: "file",
    about:
      "Database of the positions of IP addresses, such as GeoLite2 City; SIGHUP reads it again; left out: the " +
      "positions of devices and sessions are 0,0",
    allowed: "the path of a file in the MaxMind format (.mmdb)",
    schema: z.string().min(1).optional(),
  }),
  ...retentionSettings,
  ...operationSettings,
};

export type SettingName = keyof typeof settings;
export type SettingValues = { [K in SettingName]: z.output<(typeof settings)[K]["schema"]> };
