/** The events of a stream of the model double: how many, and how far apart. */
export const eventCount = 40
export const eventIntervalMs = 25
