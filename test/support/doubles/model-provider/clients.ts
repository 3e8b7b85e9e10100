import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenerativeAI, type GenerativeModel, type ModelParams } from '@google/generative-ai'
import OpenAI from 'openai'
import type { ClientTarget } from '#test/support/doubles/model-provider/proxy-fixture.ts'

export const modelNames = {
  openai: 'gpt-4o-mini',
  anthropic: 'claude-sonnet-5',
  google: 'gemini-2.5-flash',
} as const

/** The official clients, created as documented, for a target and without retries. */
export const createOpenAiClient = (
  { baseUrl, apiKey, headers, fetch }: ClientTarget,
  maxRetries = 0,
): OpenAI =>
  new OpenAI({
    baseURL: baseUrl.openai,
    apiKey: apiKey.openai,
    defaultHeaders: headers.openai,
    fetch,
    maxRetries,
  })

export const createAnthropicClient = (
  { baseUrl, apiKey, headers, fetch }: ClientTarget,
  maxRetries = 0,
): Anthropic =>
  new Anthropic({
    baseURL: baseUrl.anthropic,
    apiKey: apiKey.anthropic,
    defaultHeaders: headers.anthropic,
    fetch,
    maxRetries,
  })

/** Google's client has no `fetch` option. */
export const createGeminiClient = (
  { baseUrl, apiKey, headers }: ClientTarget,
  params: Partial<ModelParams> = {},
  apiVersion?: string,
): GenerativeModel =>
  new GoogleGenerativeAI(apiKey.google).getGenerativeModel(
    { model: modelNames.google, ...params },
    {
      baseUrl: baseUrl.google,
      ...(apiVersion && { apiVersion }),
      ...(headers.google && { customHeaders: headers.google }),
    },
  )
