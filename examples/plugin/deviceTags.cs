using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var gateway = new Gatehouse.DeviceTags("gateway", new()
    {
        Device = "edge-01",
        Tags = new[]
        {
            "edge",
            "gateway",
        },
    });

});

