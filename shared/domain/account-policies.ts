/** What an account decides about the storing of exchanges, beside the switches of a request. */
export type StoragePolicy = {
  /** Model calls are stored as they were sent, with what programs have written into them. */
  verbatim: boolean
  /** An answer is stored only where the input that it answers is. */
  responseWithInput: boolean
}

/** What is given of a policy. */
export type StoragePolicyChange = {
  [Name in keyof StoragePolicy]?: StoragePolicy[Name] | undefined
}

/** What is kept of the model calls of an account beside their exchanges. */
export type TracePolicy = {
  /** `off`: nothing; `ids`: traces are shown without texts; `texts`: with those that the vault still has. */
  mode: 'off' | 'ids' | 'texts'
  /** Days that a trace is kept, 1 to 365. */
  days: number
}

/** What is given of a policy. */
export type TracePolicyChange = { [Name in keyof TracePolicy]?: TracePolicy[Name] | undefined }
