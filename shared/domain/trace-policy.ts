/** What is kept of the model calls of an account beside their exchanges. */
export type TracePolicy = {
  /** `off`: nothing; `ids`: traces are shown without texts; `texts`: with those that the vault still has. */
  mode: 'off' | 'ids' | 'texts'
  /** Days that a trace is kept, 1 to 365. */
  days: number
}

/** What is given of a policy. */
export type TracePolicyChange = { [Name in keyof TracePolicy]?: TracePolicy[Name] | undefined }
