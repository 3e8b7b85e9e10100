/** A line of an export, before it is written. */
export type TypedLine = { type: string; [field: string]: unknown }
