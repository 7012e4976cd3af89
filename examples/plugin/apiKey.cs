using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var ci = new Gatehouse.ApiKey("ci", new()
    {
        Role = Gatehouse.ApiKeyRole.Observer,
        ValidDays = Gatehouse.ApiKeyValidDays.Days90,
        RotateBefore = 14,
        Overlap = 3,
    });

});

