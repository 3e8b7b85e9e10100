import { anthropic } from '#api/proxy/dialects/anthropic.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { google } from '#api/proxy/dialects/google.ts'
import { openai } from '#api/proxy/dialects/openai.ts'
import { responses } from '#api/proxy/dialects/responses.ts'

/** The four API formats; none is translated into another. */
export const dialects: Record<ApiFormat, Dialect> = { openai, anthropic, google, responses }
