import * as devices from "./devices.ts";
import type { Operation } from "./operation.ts";

const ofContainers = (text: string) => text.replaceAll(/\bdevice(s?)\b/g, "container$1");

/**
 * Returns the container operation that corresponds to a device operation. Its path is under `/api/containers`. A
 * container is a device with the platform `connector` and has the operations of a device (rules section 7).
 */
function containerOperation<const Id extends string, O extends Operation>(
  id: Id,
  like: O,
): Omit<O, "id"> & { readonly id: Id } {
  return {
    ...like,
    id,
    summary: ofContainers(like.summary),
    path: like.path.replace("/api/devices", "/api/containers"),
    // Descriptions of errors about the device limit keep the word "device", because devices and containers share that
    // limit.
    errors: Object.fromEntries(
      Object.entries(like.errors).map(([status, text]) => [
        status,
        text.includes("limit") ? text : ofContainers(text),
      ]),
    ),
  };
}

export const getContainers = containerOperation("getContainers", devices.getDevices);
export const getContainer = containerOperation("getContainer", devices.getDevice);
export const deleteContainer = containerOperation("deleteContainer", devices.deleteDevice);
export const updateContainer = containerOperation("updateContainer", devices.updateDevice);
export const updateContainerStatus = containerOperation("updateContainerStatus", devices.updateDeviceStatus);
export const createContainerTag = containerOperation("createContainerTag", devices.createDeviceTag);
export const updateContainerTags = containerOperation("updateContainerTags", devices.updateDeviceTags);
export const deleteContainerTag = containerOperation("deleteContainerTag", devices.deleteDeviceTag);
