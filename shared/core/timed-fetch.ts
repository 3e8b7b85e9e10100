import { providerSeconds } from '#shared/core/metrics.ts'
import { withSpan } from '#shared/core/trace.ts'

/** `fetch` for the calls to one provider; it measures the time to the response's status. */
export const timedFetch =
  (provider: string): typeof fetch =>
  async (input, init) => {
    const stopTimer = providerSeconds.startTimer({ provider })
    return withSpan('provider', { 'server.name': provider }, async span => {
      try {
        const response = await fetch(input, init)
        stopTimer({ status: response.status })
        span.setAttribute('http.response.status_code', response.status)
        return response
      } catch (error) {
        stopTimer({ status: 0 })
        throw error
      }
    })
  }
