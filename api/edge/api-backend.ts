import type { RateLimiter } from '#api/edge/rate-limit.ts'
import type { Backend } from '#shared/backend.ts'

/** The backend as the API uses it: with the rate limits of this process. */
export type ApiBackend = Backend & { rateLimiter: RateLimiter }
