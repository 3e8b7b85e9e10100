import { anthropic } from '#api/proxy/dialects/anthropic.ts'
import type { Dialect, ApiFormat } from '#api/proxy/dialects/dialect.ts'
import { google } from '#api/proxy/dialects/google.ts'
import { openai } from '#api/proxy/dialects/openai.ts'

/** The three families, each spoken as it is. */
export const dialects: Record<ApiFormat, Dialect> = { openai, anthropic, google }
