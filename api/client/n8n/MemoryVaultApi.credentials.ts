/** How n8n reaches a vault: the address of the service and a Memory Key. */
export class MemoryVaultApi {
  name = 'memoryVaultApi'
  displayName = 'Memory Vault API'
  properties = [
    {
      displayName: 'Base URL',
      name: 'baseUrl',
      type: 'string',
      default: '',
      placeholder: 'https://memory.example.com',
      required: true,
    },
    {
      displayName: 'Memory Key',
      name: 'key',
      type: 'string',
      typeOptions: { password: true },
      default: '',
      required: true,
    },
  ]
  authenticate = {
    type: 'generic',
    properties: { headers: { Authorization: '=Bearer {{$credentials.key}}' } },
  }
  test = { request: { baseURL: '={{$credentials.baseUrl}}', url: '/v1/memory/stats' } }
}
