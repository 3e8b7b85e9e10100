/** Something outside of the process that jobs need does not answer, or refuses whatever it is asked. */
export type Outage = {
  /** `mongodb`, or the name of an embedding model. */
  dependency: string
  /** One line, without anything of a client. */
  reason: string
  /** Whether this process finds out by itself when it is over; otherwise the job must ask again. */
  isAway: boolean
}
