import { setting } from "./setting.ts";
import { wholeNumber } from "./values.ts";

/** Settings of retention, and of the size of recordings. */
export const retentionSettings = {
  auditRetention: setting({
    variable: "GATEHOUSE_AUDIT_RETENTION",
    flag: "--audit-retention",
    value: "days",
    about: "How long entries of the audit trail are kept, in days; 0: for ever",
    allowed: "a whole number of days from 0 to 36500",
    fallback: "365",
    schema: wholeNumber.refine((days) => days >= 0 && days <= 36_500),
  }),
  sessionRetention: setting({
    variable: "GATEHOUSE_SESSION_RETENTION",
    flag: "--session-retention",
    value: "days",
    about: "How long sessions are kept after their end, in days; 0: for ever",
    allowed: "a whole number of days from 0 to 36500",
    fallback: "365",
    schema: wholeNumber.refine((days) => days >= 0 && days <= 36_500),
  }),
  recordingRetention: setting({
    variable: "GATEHOUSE_RECORDING_RETENTION",
    flag: "--recording-retention",
    value: "days",
    about:
      "How long recordings are kept after the end of their session, in days, but no longer than the session; " +
      "0: as long as the session",
    allowed: "a whole number of days from 0 to 36500",
    fallback: "90",
    schema: wholeNumber.refine((days) => days >= 0 && days <= 36_500),
  }),
  maximumRecording: setting({
    variable: "GATEHOUSE_MAXIMUM_RECORDING",
    flag: "--maximum-recording",
    value: "MiB",
    about: "Most that is kept of the recording of one session, in MiB; what comes after that is refused",
    allowed: "a whole number from 1 to 1024",
    fallback: "64",
    schema: wholeNumber.refine((size) => size >= 1 && size <= 1024),
  }),
};
