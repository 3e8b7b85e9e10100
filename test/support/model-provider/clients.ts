import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenerativeAI, type GenerativeModel, type ModelParams } from '@google/generative-ai'
import OpenAI from 'openai'
import type { Target } from '#test/support/model-provider/world.ts'

export const models = {
  openai: 'gpt-4o-mini',
  anthropic: 'claude-sonnet-5',
  google: 'gemini-2.5-flash',
} as const

/** The official clients as their makers' pages show them, pointed at a target; they try once. */
export const openaiOf = ({ baseUrl, apiKey, fetch }: Target, maxRetries = 0): OpenAI =>
  new OpenAI({ baseURL: baseUrl.openai, apiKey: apiKey.openai, fetch, maxRetries })

export const anthropicOf = ({ baseUrl, apiKey, fetch }: Target, maxRetries = 0): Anthropic =>
  new Anthropic({ baseURL: baseUrl.anthropic, apiKey: apiKey.anthropic, fetch, maxRetries })

/** Google's takes no `fetch` of its own. */
export const geminiOf = (
  { baseUrl, apiKey, headers }: Target,
  params: Partial<ModelParams> = {},
  apiVersion?: string,
): GenerativeModel =>
  new GoogleGenerativeAI(apiKey.google).getGenerativeModel(
    { model: models.google, ...params },
    {
      baseUrl: baseUrl.google,
      ...(apiVersion && { apiVersion }),
      ...(headers.google && { customHeaders: headers.google }),
    },
  )
