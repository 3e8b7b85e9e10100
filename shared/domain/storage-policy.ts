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
