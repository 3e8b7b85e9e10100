/** What clients of MCP send where they register themselves, as far as it is known; each with its source. */
export type ClientShape = {
  client: string
  source: string
  metadata: Record<string, unknown>
  /** What it asks for at the authorization endpoint; as a text, or missing. */
  scope?: string
}

const code = ['authorization_code', 'refresh_token']

export const clientShapes: readonly ClientShape[] = [
  {
    client: 'VS Code',
    source: 'microsoft/vscode src/vs/base/common/oauth.ts; python-sdk#1379 (modelcontextprotocol)',
    metadata: {
      client_name: 'Visual Studio Code',
      client_uri: 'https://code.visualstudio.com',
      grant_types: [...code, 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code'],
      redirect_uris: [
        'https://insiders.vscode.dev/redirect',
        'https://vscode.dev/redirect',
        'http://127.0.0.1/',
        'http://localhost/',
        'http://127.0.0.1:33418/',
      ],
      scope: 'read write delete offline_access',
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    },
    scope: 'read write delete offline_access',
  },
  {
    client: 'Claude',
    source: 'anthropics/claude-code#5826; better-auth PR 11175',
    metadata: {
      client_name: 'Claude',
      redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
      grant_types: [...code, 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
      scope: 'claudeai',
    },
    scope: 'claudeai',
  },
  {
    client: 'Claude Code',
    source: 'appstrate#1267',
    metadata: {
      client_name: 'Claude Code (vault)',
      redirect_uris: ['http://localhost:3118/callback'],
      grant_types: code,
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    scope: 'read write delete offline_access',
  },
  {
    client: 'ChatGPT',
    source: 'danielealbano/android-remote-control-mcp PR 166; stormkit-io#363',
    metadata: {
      client_name: 'ChatGPT',
      redirect_uris: ['https://chatgpt.com/connector/oauth/OUbdUMlL15Ct'],
      grant_types: code,
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    scope: 'openid profile email offline_access',
  },
  {
    client: 'n8n',
    source: 'n8n-io/n8n#22851, PR 32289',
    metadata: {
      client_name: 'n8n',
      client_uri: 'https://n8n.io/',
      redirect_uris: ['https://n8n.example.com/rest/oauth2-credential/callback'],
      grant_types: code,
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    scope: 'openid',
  },
  {
    client: 'LM Studio',
    source: 'sigbit/mcp-auth-proxy#173',
    metadata: { client_name: 'LM Studio', redirect_uris: ['http://127.0.0.1:33389/callback'] },
  },
  {
    client: 'Dify',
    source: 'langgenius/dify#34857, PR 34856',
    metadata: {
      client_name: 'Dify',
      redirect_uris: ['https://dify.example.com/console/api/mcp/oauth/callback'],
      grant_types: code,
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      client_uri: 'https://github.com/langgenius/dify',
      scope: '',
      contacts: null,
      logo_uri: null,
      tos_uri: null,
      policy_uri: null,
      jwks_uri: null,
      jwks: null,
      software_id: null,
      software_version: null,
    },
  },
  {
    client: 'Cursor',
    source: 'erp-mafia/accounted PR 2225; different-ai/openwork PR 3059',
    metadata: {
      client_name: 'Cursor',
      redirect_uris: [
        'cursor://anysphere.cursor-mcp/oauth/callback',
        'https://www.cursor.com/agents/mcp/oauth/callback',
        'http://localhost:8787/callback',
      ],
      grant_types: code,
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    scope: 'read,write',
  },
  {
    client: 'Goose',
    source: 'modelcontextprotocol/rust-sdk crates/rmcp/src/transport/auth.rs',
    metadata: {
      client_name: 'goose',
      redirect_uris: ['http://localhost:45321/oauth_callback'],
      grant_types: code,
      token_endpoint_auth_method: 'none',
      response_types: ['code'],
    },
    scope: '*',
  },
  {
    client: 'one that also asks for what is not served',
    source: 'RFC 7591, section 2',
    metadata: {
      redirect_uris: ['https://app.example/callback'],
      grant_types: ['client_credentials', 'implicit', 'authorization_code'],
      response_types: ['token', 'code'],
      token_endpoint_auth_method: 'client_secret_basic',
      id_token_signed_response_alg: 'RS256',
      logo_uri: '',
      contacts: ['none'],
    },
    scope: 'read',
  },
]
