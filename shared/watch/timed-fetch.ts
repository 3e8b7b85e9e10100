import { providerSeconds } from '#shared/watch/metrics.ts'

/** `fetch` for the calls to one provider: each is timed until its status is known. */
export const timedFetch =
  (provider: string): typeof fetch =>
  async (input, init) => {
    const timed = providerSeconds.startTimer({ provider })
    try {
      const response = await fetch(input, init)
      timed({ status: response.status })
      return response
    } catch (error) {
      timed({ status: 0 })
      throw error
    }
  }
