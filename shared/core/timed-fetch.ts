import { providerSeconds } from '#shared/core/metrics.ts'
import { traced } from '#shared/core/trace.ts'

/** `fetch` for the calls to one provider: each is timed until its status is known. */
export const timedFetch =
  (provider: string): typeof fetch =>
  async (input, init) => {
    const timed = providerSeconds.startTimer({ provider })
    return traced('provider', { 'server.name': provider }, async span => {
      try {
        const response = await fetch(input, init)
        timed({ status: response.status })
        span.setAttribute('http.response.status_code', response.status)
        return response
      } catch (error) {
        timed({ status: 0 })
        throw error
      }
    })
  }
