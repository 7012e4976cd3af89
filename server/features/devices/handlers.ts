import type { devices, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import { authSshPublicKey } from "../privateKeys/privateKeys.ts";
import { authDevice } from "./authDevice.ts";
import { challengeDevice } from "./deviceProof.ts";
import { deleteDevice, getDevice, getDevices, renameDevice, updateDevice } from "./devices.ts";
import { offlineDevice } from "./offline.ts";
import { acceptDevice, updateDeviceStatus } from "./status.ts";
import { createDeviceTag, deleteDeviceTag, updateDeviceTags } from "./tags.ts";

export const deviceHandlers: Handlers<Pick<PublicOperations, keyof typeof devices & keyof PublicOperations>> =
  {
    authDevice,
    challengeDevice,
    authSshPublicKey,
    offlineDevice,
    getDevices,
    getDevice,
    deleteDevice,
    updateDevice,
    renameDevice,
    acceptDevice,
    updateDeviceStatus,
    createDeviceTag,
    updateDeviceTags,
    deleteDeviceTag,
  };
