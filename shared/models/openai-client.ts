import OpenAI, { AzureOpenAI } from 'openai'
import {
  hasDeploymentPaths,
  openAiBaseUrl,
  openAiKeyHeader,
} from '#shared/core/provider-address.ts'
import type { ProviderAccess } from '#shared/models/model-list.ts'

type CallOptions = { maxRetries: number; timeout: number; fetch?: typeof fetch }

/** The SDK's client for the OpenAI-compatible API of a provider. */
export function openOpenAiClient(
  { provider, apiKey }: ProviderAccess,
  options: CallOptions,
): OpenAI {
  // The SDK asks for a key also where none is needed.
  const key = apiKey || 'none'
  const { apiVersion } = provider
  const client = { ...options, apiKey: key, baseURL: openAiBaseUrl(provider) }
  if (apiVersion !== undefined && hasDeploymentPaths(provider))
    return new AzureOpenAI({ ...client, apiVersion })
  return new OpenAI({
    ...client,
    ...(apiVersion !== undefined && { defaultQuery: { 'api-version': apiVersion } }),
    ...(provider.isAzure && {
      defaultHeaders: { authorization: null, ...openAiKeyHeader(provider, key) },
    }),
  })
}
