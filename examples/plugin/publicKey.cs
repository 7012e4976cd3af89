using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var ana = new Gatehouse.PublicKey("ana", new()
    {
        Name = "Ana, gateways",
        Data = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY",
        Username = "^(ana|root)$",
        Filter = new Gatehouse.Inputs.PublicKeyFilterArgs
        {
            Tags = new[]
            {
                "edge",
            },
        },
    });

});

